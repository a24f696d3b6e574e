# gnuplot -e "run='async-dsgd-seed-1'" async-dsgd.gp
set terminal pngcairo size 1000,400 font ",10"
set output "async-dsgd.png"
set datafile separator ","
set grid back lc rgb "#dddddd"
set xlabel "virtual time, s"
set yrange [0.3:0.8]
set xrange [0:300]
file(v) = run."/".v."/metrics.csv"
set key bottom right samplen 2
set multiplot layout 1,2
set title "test accuracy, gamma max = E[T]"
plot file("async-125") using 2:10 with lines lw 2 lc 2 title "asynchronous", \
     file("barrier-125") using 2:10 with lines lw 2 lc 4 title "barrier, late ones discarded", \
     file("sync") using 2:10 with lines lw 2 lc 7 title "waits for all"
set title "test accuracy, gamma max = 4/5 E[T]"
plot file("async-100") using 2:10 with lines lw 2 lc 2 title "asynchronous", \
     file("barrier-100") using 2:10 with lines lw 2 lc 4 title "barrier, late ones discarded", \
     file("sync") using 2:10 with lines lw 2 lc 7 title "waits for all"
unset multiplot
