# gnuplot -e "run='decefl-nodes-seed-1'" decefl-nodes.gp
set terminal pngcairo size 1000,400 font ",10"
set output "decefl-nodes.png"
set datafile separator ","
set grid back lc rgb "#dddddd"
set xlabel "round"
set key bottom right samplen 2
set yrange [0.33:0.5]
file(v) = run."/".v."/metrics.csv"
set arrow 1 from 300, graph 0 to 300, graph 1 nohead dt 2
set arrow 2 from 600, graph 0 to 600, graph 1 nohead dt 2
set label 1 "6 nodes" at 150, graph 0.95 center
set label 2 "8 nodes" at 450, graph 0.95 center
set label 3 "6 nodes" at 750, graph 0.95 center
set multiplot layout 1,2
set ylabel "test loss, mean of the nodes"
set y2tics
set y2range [0.70:0.86]
set y2label "test accuracy"
set key center right
set title "IID"
plot file("iid") using 1:4 with lines lw 2 lc 2 title "DeceFL, loss", \
     file("iid-fedavg") using 1:4 with lines lw 2 lc 7 dt 2 title "FedAvg, loss", \
     file("iid") using 1:10 axes x1y2 with lines lw 1 lc 2 title "DeceFL, accuracy", \
     file("iid-fedavg") using 1:10 axes x1y2 with lines lw 1 lc 7 dt 2 title "FedAvg, accuracy"
set title "not IID"
plot file("non-iid") using 1:4 with lines lw 2 lc 2 notitle, \
     file("non-iid-fedavg") using 1:4 with lines lw 2 lc 7 dt 2 notitle, \
     file("non-iid") using 1:10 axes x1y2 with lines lw 1 lc 2 notitle, \
     file("non-iid-fedavg") using 1:10 axes x1y2 with lines lw 1 lc 7 dt 2 notitle
unset multiplot
