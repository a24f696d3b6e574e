# In the folder of the results: gnuplot pame-fig3.gp (the path to this file).
set datafile separator ","
set terminal pngcairo size 1100,380 font "sans,10"
set output "pame-fig3.png"
set multiplot layout 1,3
set logscale y
set yrange [0.1:1.2]
set xrange [0:60]
set xlabel "steps"
set ylabel "f(mean w)"
set key top right
do for [m in "32 64 128"] {
  set title "m = " . m
  plot for [p in "0.1 0.2 0.3 0.4 0.5 0.6 1.0"] "m" . m . "-p" . p . "/metrics.csv" \
    every ::1 using 1:3 with lines lw 1.5 title "s/n = " . p
}
