# gnuplot -e "run='decefl-consensus-seed-1'" decefl-consensus.gp
set terminal pngcairo size 1000,420 font ",10"
set output "decefl-consensus.png"
set datafile separator ","
set logscale xy
set xrange [20:]
set format y "10^{%L}"
set grid back lc rgb "#dddddd"
set xlabel "step t"
file(v) = run."/".v."/metrics.csv"
stats file("optimum") using 3 every ::1 nooutput
best = STATS_min
array name[5] = ["fedavg", "swarm", "decefl-p05", "decefl-p03", "decefl-p03-constant-step"]
array label[5] = ["FedAvg", "SL (swarm)", "DeceFL, p = 0.5", "DeceFL, p = 0.3", \
                  "p = 0.3, constant step"]
array width[5] = [5, 2, 2, 2, 2]
array dash[5] = [1, 2, 1, 1, 1]
set multiplot layout 1,2
set title "gap f(mean w) - f*"
set key bottom left samplen 2
plot for [i=1:5] file(name[i]) using 1:($3 - best) with lines \
       lw width[i] dt dash[i] lc i title label[i], \
     1e-2 / x lc rgb "black" dt 3 title "1/t"
set title "consensus error, mean |w_i - mean w|^2"
plot for [i=1:5] file(name[i]) using 1:5 with lines \
       lw width[i] dt dash[i] lc i notitle, \
     1e-1 / x lc rgb "black" dt 3 title "1/t"
unset multiplot
