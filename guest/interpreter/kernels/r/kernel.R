# kernel.R - IRkernel, which an interrupt between two steps of its own would end.
kernel <- IRkernel:::Kernel$new(connection_file = commandArgs(TRUE)[[1]])
repeat tryCatch(kernel$run(), interrupt = function(e) NULL)
