package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
)

//go:embed assets/*
var assetFiles embed.FS

// asset is one file by the name that holds its content's hash, so that a browser keeps it for good.
type asset struct {
	kind    string
	content []byte
}

// assetKinds are the content types, whatever this machine's own tables say.
var assetKinds = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml"}

// assets by their hashed names, and those names by the plain ones.
var assets, assetNames = func() (map[string]asset, map[string]string) {
	all, names := map[string]asset{}, map[string]string{}
	files, err := assetFiles.ReadDir("assets")
	if err != nil {
		panic("pages: " + err.Error()) // cannot be: they are part of the program
	}
	for _, f := range files {
		content, err := assetFiles.ReadFile("assets/" + f.Name())
		if err != nil {
			panic("pages: " + err.Error())
		}
		sum := sha256.Sum256(content)
		ext := path.Ext(f.Name())
		hashed := strings.TrimSuffix(f.Name(), ext) + "." + hex.EncodeToString(sum[:6]) + ext
		all[hashed] = asset{assetKinds[ext], content}
		names[f.Name()] = hashed
	}
	return all, names
}()

// assetURL is where a file is served; empty for one that does not exist, which a test finds.
func assetURL(name string) string {
	if hashed, ok := assetNames[name]; ok {
		return AssetsPrefix + hashed
	}
	return ""
}

func (p *Pages) asset(w http.ResponseWriter, r *http.Request) {
	a, ok := assets[r.PathValue("name")]
	if !ok {
		p.fail(p.visit(w, r), notFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(a.content) // nobody is left to be told
}
