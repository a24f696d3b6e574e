# gnuplot -e "run='depositum-period-seed-1'" depositum-period.gp
set terminal pngcairo size 1000,400 font ",10"
set output "depositum-period.png"
set datafile separator ","
set grid back lc rgb "#dddddd"
set xlabel "iteration t"
file(v) = run."/".v."/metrics.csv"
array name[4] = ["t01", "t05", "t10", "t20"]
array label[4] = ["T0 = 1", "T0 = 5", "T0 = 10", "T0 = 20"]
set multiplot layout 1,3
set title "test loss at the mean model"
set key top right samplen 2
set yrange [0.5:2]
plot for [i=1:4] file(name[i]) using 1:3 with lines lw 2 lc i title label[i]
set title "test accuracy of the mean model"
unset key
set yrange [0:0.9]
plot for [i=1:4] file(name[i]) using 1:11 with lines lw 2 lc i notitle
set title "consensus error of x"
set yrange [*:*]
set logscale y
set format y "10^{%L}"
plot for [i=1:4] file(name[i]) using 1:5 with lines lw 1 lc i notitle
unset multiplot
