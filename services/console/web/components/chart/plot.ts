/** Draws one chart with uPlot, in the colours of the page; loaded when it is needed. */
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import type { Mark, Series } from './series.ts'

/** @returns ends the drawing */
export function drawPlot(
  element: HTMLElement,
  chart: {
    times: number[]
    series: Series[]
    height: number
    format: (value: number) => string
    isLastOpen: boolean
    utc: boolean
    max: number | undefined
    marks: readonly Mark[] | undefined
  },
): () => void {
  const color = (name: string) => readColor(element, name === 'accent' ? 'accent-text' : name)
  const muted = color('muted')
  const grid = { stroke: color('line'), width: 1 }
  const last = chart.times.length - 1
  const openEnds = chart.isLastOpen ? chart.series : []
  const plot = new uPlot(
    {
      width: element.clientWidth,
      height: chart.height,
      legend: { show: false },
      ...(chart.utc ? { tzDate: (at: number) => uPlot.tzDate(new Date(at * 1_000), 'UTC') } : {}),
      scales: { y: { range: (_, __, most) => [0, chart.max ?? Math.max(most, 1)] } },
      hooks: { drawAxes: [(drawn) => drawMarks(drawn, chart.marks ?? [], color)] },
      axes: [
        { stroke: muted, grid, ticks: grid, values: timeTexts },
        { stroke: muted, grid, ticks: grid, values: (_, at) => at.map(chart.format), size: 56 },
      ],
      series: [
        {},
        ...chart.series.map(({ label, color: name, look }) => {
          const stroke = color(name ?? 'accent')
          return look === 'points'
            ? { label, stroke, paths: () => null, points: { show: true, size: 6, fill: stroke } }
            : { label, stroke, width: 1.5, points: { show: false } }
        }),
        ...openEnds.map(({ label, color: name }) => {
          const stroke = color(name ?? 'accent')
          return { label, stroke, width: 1.5, dash: [4, 4], points: { show: false } }
        }),
      ],
    },
    [
      chart.times.map((at) => at / 1_000),
      ...chart.series.map(({ values }) => (chart.isLastOpen ? values.with(-1, null) : values)),
      ...openEnds.map(({ values }) => values.map((value, at) => (at < last - 1 ? null : value))),
    ],
    element,
  )
  const observer = new ResizeObserver(() =>
    plot.setSize({ width: element.clientWidth, height: chart.height }),
  )
  observer.observe(element)
  return () => {
    observer.disconnect()
    plot.destroy()
  }
}

/** Dashed lines over the whole width, below the series. */
function drawMarks({ ctx, bbox, valToPos }: uPlot, marks: readonly Mark[], color: ToColor): void {
  ctx.save()
  ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio])
  ctx.lineWidth = devicePixelRatio
  for (const mark of marks) {
    const y = Math.round(valToPos(mark.at, 'y', true))
    ctx.strokeStyle = color(mark.color)
    ctx.beginPath()
    ctx.moveTo(bbox.left, y)
    ctx.lineTo(bbox.left + bbox.width, y)
    ctx.stroke()
  }
  ctx.restore()
}

type ToColor = (name: string) => string

const hour = 3_600
const day = 24 * hour
/** By the seconds between ticks: the text of a tick, and what stands below at a new year and day. */
const timeTexts: uPlot.Axis.Values = [
  [28 * day, '{YYYY}-{MM}', null, null, null, null, null, null, 1],
  [day, '{MM}-{DD}', '\n{YYYY}', null, null, null, null, null, 1],
  [60, '{HH}:{mm}', '\n{YYYY}-{MM}-{DD}', null, '\n{MM}-{DD}', null, null, null, 1],
  [1, '{HH}:{mm}:{ss}', '\n{YYYY}-{MM}-{DD}', null, '\n{MM}-{DD}', null, null, null, 1],
]

/** A colour of the page as the theme makes it: a canvas does not read variables. */
function readColor(element: HTMLElement, name: string): string {
  const probe = document.createElement('span')
  probe.style.color = `var(--${name})`
  element.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}
