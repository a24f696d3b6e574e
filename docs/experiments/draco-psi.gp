# gnuplot -e "run='draco-psi-seed-1'" draco-psi.gp
set terminal pngcairo size 1000,400 font ",10"
set output "draco-psi.png"
set datafile separator ","
set grid back lc rgb "#dddddd"
set xlabel "virtual time, s"
set yrange [0:0.9]
set xrange [0:1500]
file(v) = run."/".v."/metrics.csv"
set key bottom right samplen 2
set multiplot layout 1,2
set title "test accuracy, ring"
plot file("ring-01") using 2:10 with lines lw 2 title "Psi = 1", \
     file("ring-03") using 2:10 with lines lw 2 title "Psi = 3", \
     file("ring-06") using 2:10 with lines lw 2 title "Psi = 6", \
     file("ring-all") using 2:10 with lines lw 2 title "no limit"
set title "test accuracy, complete graph"
plot file("complete-005") using 2:10 with lines lw 2 title "Psi = 5", \
     file("complete-030") using 2:10 with lines lw 2 title "Psi = 30", \
     file("complete-all") using 2:10 with lines lw 2 title "no limit"
unset multiplot
