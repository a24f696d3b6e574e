# gnuplot -e "run='depositum-steps-seed-1'" depositum-steps.gp
set terminal pngcairo size 1200,1400 font ",10"
set output "depositum-steps.png"
set datafile separator ","
set grid back lc rgb "#dddddd"
set xlabel "iteration t"
array name[6] = ["a05-b05", "a10-b05", "a05-b10", "a20-b05", "a10-b10", "a20-b10"]
array label[6] = ["0.05, 0.5", "0.1, 0.5", "0.05, 1", "0.2, 0.5", "0.1, 1", "0.2, 1"]
array dash[6] = [1, 1, 2, 1, 2, 1]
array hue[6] = [1, 2, 7, 3, 4, 6]
array width[6] = [2, 4, 2, 4, 2, 2]
array suffix[2] = ["", "-all"]
array batch[2] = ["batches of 64", "all rows"]
file(v, b) = run."/".v.suffix[b]."/metrics.csv"
set multiplot layout 4,3
do for [b=1:2] {
  set title "(a) training loss, ".batch[b]
  set key top right samplen 2 title "alpha, beta"
  unset logscale y
  set format y "%g"
  set xrange [0:400]
  set yrange [0.32:0.5]
  plot for [i=1:6] file(name[i], b) using 1:3 with lines lw width[i] dt dash[i] lc hue[i] title label[i]
  unset key
  set yrange [*:*]
  set logscale y
  set format y "10^{%L}"
  set title "(b) gradient estimation error, ".batch[b]
  plot for [i=1:6] file(name[i], b) using 1:13 with lines lw width[i] dt dash[i] lc hue[i] notitle
  set title "(c) proximal gradient, ".batch[b]
  plot for [i=1:6] file(name[i], b) using 1:14 with lines lw width[i] dt dash[i] lc hue[i] notitle
  set xrange [1:150]
  set title "(d) consensus error of x, ".batch[b]
  plot for [i=1:6] file(name[i], b) using 1:5 with lines lw width[i] dt dash[i] lc hue[i] notitle
  set title "(e) consensus error of y, ".batch[b]
  plot for [i=1:6] file(name[i], b) using 1:15 with lines lw width[i] dt dash[i] lc hue[i] notitle
  set title "(f) consensus error of {/Symbol n}, ".batch[b]
  plot for [i=1:6] file(name[i], b) using 1:16 with lines lw width[i] dt dash[i] lc hue[i] notitle
}
unset multiplot
