# check.sh SHOP_OPT FILECHECK FILE: runs the command that FILE's first line
# names and compares what it says with the file's CHECK lines.
options=$(sed -n '1s|^// RUN: shop-opt||p' "$3")
eval "$1 $options '$3' 2>&1" | "$2" "$3"
