# In the folder of the results: gnuplot pame-fig9.gp (the path to this file).
# Rounds (figure 9) and bytes (figure 10) until f(mean w) <= 0.2.
set terminal pngcairo size 1100,420 font "sans,10"
set logscale xy
set xtics (32, 64, 128)
set xrange [26:160]
set xlabel "m"
set key top left
first(a, n, per) = sprintf("< for m in 32 64 128; do awk -F, -v m=$m \
'NR > 1 && $3 <= 0.2 {print m, $1 / %d, $6 / 1e6; exit}' m$m-n%s-%s/metrics.csv; done", per, n, a)
do for [figure = 9:10] {
  set output sprintf("pame-fig%d.png", figure)
  set ylabel figure == 9 ? "rounds to f(mean w) = 0.2" : "MB of all nodes to f(mean w) = 0.2"
  if (figure == 9) { set yrange [3:60] } else { set yrange [0.5:300] }
  set multiplot layout 1,3
  do for [n in "500 1000 2000"] {
    set title "n = " . n
    plot for [a in "d-psgd dfedsam beer anq-nids"] first(a, n, 1) \
      using 1:(column(figure - 7)) with linespoints lw 1.5 title a, \
      first("pame", n, 5) using 1:(column(figure - 7)) with linespoints lw 2.5 \
      lc "black" title "pame"
  }
  unset multiplot
}
