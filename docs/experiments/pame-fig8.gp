# In the folder of the results: gnuplot pame-fig8.gp (the path to this file).
# PaME's steps are counted one by one, five to a round.
set datafile separator ","
set terminal pngcairo size 1100,400 font "sans,10"
set output "pame-fig8.png"
set multiplot layout 1,3
set logscale y
set yrange [0.03:1]
set xrange [0:50]
set xlabel "rounds"
set ylabel "f(mean w)"
do for [m in "32 64 128"] {
  set title "m = " . m
  plot for [a in "d-psgd dfedsam beer anq-nids"] "m" . m . "-" . a . "/metrics.csv" \
    every ::1 using 1:3 with lines lw 1.5 title a, \
    "m" . m . "-pame/metrics.csv" every ::1 using ($1 / 5):3 with lines \
    lw 2.5 lc "black" title "pame", \
    "m" . m . "-pame-table-2/metrics.csv" every ::1 using ($1 / 5):3 with lines \
    lw 2 lc "black" dt 2 title "pame, Table II"
}
