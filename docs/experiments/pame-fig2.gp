# In the folder of the results: gnuplot pame-fig2.gp (the path to this file).
set terminal pngcairo size 1100,700 font "sans,10"
set output "pame-fig2.png"
set multiplot layout 2,2
set ylabel "final f(mean w)"
last(m, kind, values) = sprintf("< for x in %s; do echo $x $(tail -n 1 m%s-%s$x/metrics.csv | cut -d, -f1,3 | tr , ' '); done", values, m, kind)
rates = "0.1 0.2 0.3 0.4 0.5 0.6"
set yrange [0.11:0.2]
set title "(a) by transmission rate, nu = 0.2"
set xlabel "s/n"
plot for [m in "32 64 128"] last(m, "p", rates) using 1:3 with linespoints lw 1.5 title "m = ".m
set title "(b) by participation rate, s/n = 0.2"
set xlabel "nu"
plot for [m in "32 64 128"] last(m, "nu", rates) using 1:3 with linespoints lw 1.5 title "m = ".m, \
  for [m in "32 64 128"] last(m, "w", "0.1 0.3 0.4 0.5 0.6") using 1:3 with points pt 7 title "m = ".m.", first step 1/4"
set logscale x 2
set title "(c) by period, the same for all"
set xlabel "kappa"
plot for [m in "32 64 128"] last(m, "k", "1 2 4 8 16") using 1:3 with linespoints lw 1.5 title "m = ".m
set title "(d) by median period, each its own of k/2 to 3k/2"
plot for [m in "32 64 128"] last(m, "r", "2 4 8 16") using 1:3 with linespoints lw 1.5 title "m = ".m
