# gnuplot -e "run='spodgt-delay-seed-7'" spodgt-delay.gp
# A round's delay by [Spod-GT] sec. 5.1, its expectation: the mean of 1/p_i is
# 3.49 with seed 7, that of 1/p_hat_ij 11.12 (in) and 10.95 (out); terms that are
# drawn count 1 each.
proc = 3.49
links = 11.12 + 10.95
set terminal pngcairo size 1000,400 font ",10"
set output "spodgt-delay.png"
set datafile separator ","
set grid back lc rgb "#dddddd"
set xlabel "total delay"
set xrange [0:5000]
set yrange [0:0.9]
file(v) = run."/".v."/metrics.csv"
set key bottom right samplen 2
array name[5] = ["spod-gt", "push-pull", "g-push-pull", "k-gt", "sporadic-k-gt"]
array label[5] = ["Spod-GT", "Push-Pull", "G-Push-Pull", "K-GT, K = 4", "Sporadic K-GT"]
array delay[5] = [3, proc + links, proc + 2, 4 * proc + links, 1 + links]
set multiplot layout 1,2
set title "test accuracy, IID"
plot for [i=1:5] file("iid-".name[i]) using ($1 * delay[i]):10 with lines lw 2 lc i title label[i]
set title "test accuracy, one class a node"
plot for [i=1:5] file("one-class-".name[i]) using ($1 * delay[i]):10 with lines lw 2 lc i title label[i], \
     file("one-class-spod-gt-unbiased") using ($1 * 3):10 with lines lw 2 dt 2 lc 8 title "Spod-GT, 1/p"
unset multiplot
