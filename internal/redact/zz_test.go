package redact

import ("testing";"fmt";"os";"bufio")

func TestTry(t *testing.T) {
	f, _ := os.Open("/tmp/try.txt"); defer f.Close()
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		o := Text(sc.Text())
		flag := ""
		if Text(o) != o { flag = "  !!! "+Text(o) }
		fmt.Printf("%s\n   %s%s\n", sc.Text(), o, flag)
	}
}
