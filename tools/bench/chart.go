// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"
	"text/template"
)

// chart is a picture with logarithmic axes: the number of objects to the right, a
// cost upwards, a line for each workload.
type chart struct {
	File, Title, Y string
	Lines          []line
}

type line struct {
	Title  string
	Points []point
	// Dashed is for what is there to compare with.
	Dashed bool
}

type point struct{ X, Y float64 }

// The picture's size, and the rectangle of the axes in it.
const (
	chartWidth, chartHeight = 760, 400
	left, right, top, under = 70, 540, 50, 340
)

// svg renders the chart. The colours follow the reader's light or dark scheme, can be
// read on both where a viewer knows no schemes, and each line has its own marker, for
// those who can't tell the colours apart.
func (c chart) svg() (string, error) {
	var xs, ys []float64
	for _, l := range c.Lines {
		for _, p := range l.Points {
			xs, ys = append(xs, p.X), append(ys, p.Y)
		}
	}
	x, y := newAxis(xs, left, right), newAxis(ys, under, top)
	v := view{
		Width: chartWidth, Height: chartHeight, Left: left, Right: right, Top: top, Bottom: under,
		Title: c.Title, YTitle: c.Y, X: x.ticks(), Y: y.ticks(),
	}
	for i, l := range c.Lines {
		drawn := drawn{
			Title: l.Title, Class: "c" + strconv.Itoa(i%len(markers)), LabelY: top + 10 + 24*i,
			Marker: markers[i%len(markers)],
		}
		if l.Dashed {
			drawn.Class, drawn.Marker = "dashed", ""
		}
		for _, p := range l.Points {
			drawn.Points = append(drawn.Points, pixel{x.at(p.X), y.at(p.Y)})
		}
		v.Lines = append(v.Lines, drawn)
	}
	var w strings.Builder
	err := chartTemplate.Execute(&w, v)
	return w.String(), err
}

// axis maps values to pixels by their logarithms, from a power of ten to one.
type axis struct {
	low, high float64 // powers of ten
	from, to  float64 // pixels
}

// newAxis covers the values that are above 0.
func newAxis(values []float64, from, to float64) axis {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if v > 0 {
			low, high = min(low, math.Floor(math.Log10(v))), max(high, math.Ceil(math.Log10(v)))
		}
	}
	switch {
	case low > high: // no value
		low, high = 0, 1
	case low == high:
		high = low + 1
	}
	return axis{low, high, from, to}
}

// at is a value's pixel, in tenths; what is below the axis is at its lower end.
func (a axis) at(v float64) float64 {
	share := 0.0
	if v > 0 {
		share = max(0, (math.Log10(v)-a.low)/(a.high-a.low))
	}
	return math.Round(10*(a.from+share*(a.to-a.from))) / 10
}

func (a axis) ticks() []tick {
	var ticks []tick
	for e := a.low; e <= a.high; e++ {
		v := math.Pow(10, e)
		ticks = append(ticks, tick{a.at(v), strconv.FormatFloat(v, 'f', -1, 64)})
	}
	return ticks
}

// What the template draws.
type (
	view struct {
		Width, Height, Left, Right, Top, Bottom int
		Title, YTitle                           string
		X, Y                                    []tick
		Lines                                   []drawn
	}
	tick struct {
		At    float64
		Label string
	}
	pixel struct{ X, Y float64 }
	drawn struct {
		Title, Class, Marker string
		LabelY               int
		Points               []pixel
	}
)

// Path is the line's path.
func (d drawn) Path() string {
	parts := make([]string, len(d.Points))
	for i, p := range d.Points {
		parts[i] = fmt.Sprintf("%g,%g", p.X, p.Y)
	}
	return strings.Join(parts, " ")
}

// markers are paths around the origin: a circle, a square, a triangle, a diamond, a
// cross, one for each colour.
var markers = []string{
	"M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0z",
	"M-3.5,-3.5h7v7h-7z",
	"M0,-4.5l4.5,8h-9z",
	"M0,-5l4.5,5l-4.5,5l-4.5,-5z",
	"M-4,-1.5h2.5v-2.5h3v2.5h2.5v3h-2.5v2.5h-3v-2.5h-2.5z",
}

func escape(text string) (string, error) {
	var w strings.Builder
	err := xml.EscapeText(&w, []byte(text))
	return w.String(), err
}

var chartTemplate = template.Must(template.New("chart").Funcs(template.FuncMap{
	"escape": escape,
	"middle": func(a, b int) int { return (a + b) / 2 },
	"add":    func(a, b int) int { return a + b },
}).Parse(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {{.Width}} {{.Height}}" width="{{.Width}}" height="{{.Height}}" role="img" aria-label="{{escape .Title}}">
<title>{{escape .Title}}</title>
<style>
  text { font: 13px sans-serif; fill: #6e7781 }
  .title { font-size: 16px; font-weight: 600 }
  .grid { stroke: #8c959f; stroke-opacity: .35 }
  .axis { stroke: #6e7781 }
  polyline { fill: none; stroke-width: 2 }
  .c0 { stroke: #d1242f; fill: #d1242f } .c1 { stroke: #0969da; fill: #0969da } .c2 { stroke: #bc4c00; fill: #bc4c00 }
  .c3 { stroke: #8250df; fill: #8250df } .c4 { stroke: #1a7f37; fill: #1a7f37 }
  .dashed { stroke: #6e7781; stroke-dasharray: 5 5 }
  polyline.c0, polyline.c1, polyline.c2, polyline.c3, polyline.c4 { fill: none }
  @media (prefers-color-scheme: light) {
    text { fill: #24292f }
  }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .axis, .dashed { stroke: #9198a1 }
    .c0 { stroke: #ff7b72; fill: #ff7b72 } .c1 { stroke: #79c0ff; fill: #79c0ff } .c2 { stroke: #ffa657; fill: #ffa657 }
    .c3 { stroke: #d2a8ff; fill: #d2a8ff } .c4 { stroke: #7ee787; fill: #7ee787 }
  }
</style>
<text class="title" x="{{.Left}}" y="28">{{escape .Title}}</text>
{{- range .X}}
<line class="grid" x1="{{.At}}" y1="{{$.Top}}" x2="{{.At}}" y2="{{$.Bottom}}"/>
<text x="{{.At}}" y="{{add $.Bottom 20}}" text-anchor="middle">{{.Label}}</text>
{{- end}}
{{- range .Y}}
<line class="grid" x1="{{$.Left}}" y1="{{.At}}" x2="{{$.Right}}" y2="{{.At}}"/>
<text x="{{add $.Left -8}}" y="{{.At}}" dy="4" text-anchor="end">{{.Label}}</text>
{{- end}}
<polyline class="axis" points="{{.Left}},{{.Top}} {{.Left}},{{.Bottom}} {{.Right}},{{.Bottom}}"/>
<text x="{{middle .Left .Right}}" y="{{add .Bottom 45}}" text-anchor="middle">objects (N)</text>
<text transform="translate(20 {{middle .Top .Bottom}}) rotate(-90)" text-anchor="middle">{{escape .YTitle}}</text>
{{- range .Lines}}
{{- $line := .}}
<polyline class="{{.Class}}" points="{{.Path}}"/>
{{- if .Marker}}{{range .Points}}
<path class="{{$line.Class}}" d="{{$line.Marker}}" transform="translate({{.X}} {{.Y}})"/>
{{- end}}{{end}}
<polyline class="{{.Class}}" points="{{add $.Right 16}},{{.LabelY}} {{add $.Right 40}},{{.LabelY}}"/>
{{- if .Marker}}
<path class="{{.Class}}" d="{{.Marker}}" transform="translate({{add $.Right 28}} {{.LabelY}})"/>
{{- end}}
<text x="{{add $.Right 48}}" y="{{.LabelY}}" dy="4">{{escape .Title}}</text>
{{- end}}
</svg>
`))
