# gnuplot -e "run='kd-pdfl-table-seed-1'" kd-pdfl-table.gp
set terminal pngcairo size 700,400 font ",10"
set output "kd-pdfl-table.png"
set grid back y lc rgb "#dddddd"
set title "test accuracy of each user's own model, mean of the users"
set yrange [0.7:0.95]
set xrange [0.4:4.6]
set boxwidth 0.35
set style fill solid 0.8 border
set xtics ("local learning" 1, "FedAvg" 2, "FedAvg+" 3, "KD-PDFL" 4)
set key top left
last(v) = real(system("tail -n 1 ".run."/".v."/metrics.csv | cut -d, -f10"))
array name[4] = ["local", "fedavg", "fedavg-plus", "kd-pdfl"]
$bars << END
1
2
3
4
END
a(i) = last("a-".name[int(i)])
b(i) = last("b-".name[int(i)])
plot $bars using ($1 - 0.19):(a($1)) with boxes lc 2 title "users of classes 0 to 4", \
     $bars using ($1 + 0.19):(b($1)) with boxes lc 3 title "users of classes 5 to 9", \
     $bars using ($1 - 0.19):(a($1)):(sprintf("%.3f", a($1))) with labels offset 0,0.6 notitle, \
     $bars using ($1 + 0.19):(b($1)):(sprintf("%.3f", b($1))) with labels offset 0,0.6 notitle
