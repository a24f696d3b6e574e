# gnuplot -e "run='depositum-steps-seed-1'" depositum-steps.gp
set terminal pngcairo size 1320,800 font ",10"
set output "depositum-steps.png"
set datafile separator ","
set grid back lc rgb "#dddddd"
set xlabel "iteration t"
file(v) = run."/".v."/metrics.csv"
array name[6] = ["a05-b05", "a10-b05", "a05-b10", "a20-b05", "a10-b10", "a20-b10"]
array label[6] = ["0.05, 0.5", "0.1, 0.5", "0.05, 1", "0.2, 0.5", "0.1, 1", "0.2, 1"]
array dash[6] = [1, 1, 2, 1, 2, 1]
array hue[6] = [1, 2, 7, 3, 4, 6]
array width[6] = [2, 4, 2, 4, 2, 2]
set multiplot layout 2,3
set title "(a) training loss at the mean model"
set key top right samplen 2 title "alpha, beta"
set yrange [:0.5]
plot for [i=1:6] file(name[i]) using 1:3 with lines lw width[i] dt dash[i] lc hue[i] title label[i]
unset key
set yrange [*:*]
set logscale y
set format y "10^{%L}"
set title "(b) gradient estimation error, |mean grad f_i - mean {/Symbol n}|^2"
plot for [i=1:6] file(name[i]) using 1:13 with lines lw width[i] dt dash[i] lc hue[i] notitle
set title "(c) proximal gradient, |G^{/Symbol a}|^2"
plot for [i=1:6] file(name[i]) using 1:14 with lines lw width[i] dt dash[i] lc hue[i] notitle
set xrange [1:100]
set title "(d) consensus error of x"
plot for [i=1:6] file(name[i]) using 1:5 with lines lw width[i] dt dash[i] lc hue[i] notitle
set title "(e) consensus error of y"
plot for [i=1:6] file(name[i]) using 1:15 with lines lw width[i] dt dash[i] lc hue[i] notitle
set title "(f) consensus error of {/Symbol n}"
plot for [i=1:6] file(name[i]) using 1:16 with lines lw width[i] dt dash[i] lc hue[i] notitle
unset multiplot
