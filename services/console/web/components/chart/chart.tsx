/**
 * Series over time: drawn by uPlot, which is loaded when the first chart is shown, labelled at the
 * line's end, with the same numbers as a table for keyboards and screen readers. A missing value is
 * a gap, never zero.
 */
import { useEffect, useRef, useState } from 'react'
import { Button } from '../button.tsx'
import { usePreferences } from '../state/preferences.ts'
import { Table } from '../table.tsx'
import { toIso } from '../time/clock.ts'
import { useExact } from '../time/time.tsx'
import type { Mark, Series } from './series.ts'

type ChartProps = {
  title: string
  /** Milliseconds, ascending. */
  times: number[]
  /** The times are days, which no time zone moves. */
  areDays?: boolean
  series: Series[]
  height?: number
  /** The last values are of a span that has not ended: they are dashed and marked "so far". */
  isLastOpen?: boolean
  /** The end of the axis, which is otherwise the greatest value. */
  max?: number
  marks?: Mark[] | undefined
  format?: (value: number) => string
}

const plain = (value: number) => value.toLocaleString('en')

export function Chart(props: ChartProps) {
  const { title } = props
  const [asTable, setAsTable] = useState(false)
  return (
    <figure className="grid grid-cols-[minmax(0,1fr)] gap-2">
      <figcaption className="flex items-center justify-between gap-2">
        <span className="font-medium">{title}</span>
        <Button aria-pressed={asTable} look="quiet" onClick={() => setAsTable(!asTable)} small>
          {asTable ? 'Chart' : 'Table'}
        </Button>
      </figcaption>
      {asTable ? <ChartTable {...props} /> : <Plot {...props} />}
    </figure>
  )
}

function Plot({
  title,
  times,
  series,
  height = 180,
  isLastOpen = false,
  areDays = false,
  max,
  marks,
  format = plain,
}: ChartProps) {
  const box = useRef<HTMLDivElement>(null)
  const { theme, zone, isSystemDark } = usePreferences()
  useEffect(() => {
    const element = box.current
    if (element === null) return
    let end = () => {}
    let gone = false
    nameLanguage()
    void import('./plot.ts').then(({ drawPlot }) => {
      const utc = areDays || zone === 'utc'
      const chart = { times, series, height, format, isLastOpen, utc, max, marks }
      if (!gone) end = drawPlot(element, chart)
    })
    return () => {
      gone = true
      end()
    }
    // The theme changes the colours that are read from the page.
  }, [times, series, height, format, isLastOpen, max, marks, areDays, zone, theme, isSystemDark])
  const labels = series.map(({ label, values }) => {
    const last = values.findLast((value) => value !== null)
    return { label, text: last === undefined || last === null ? 'no data' : format(last) }
  })
  return (
    <div aria-label={`${title}, as a chart; the table has the same numbers`} role="img">
      <div ref={box} style={{ height }} />
      <div className="flex flex-wrap gap-x-4 text-muted text-sm">
        {labels.map(({ label, text }, at) => (
          <span key={label}>
            <span
              aria-hidden="true"
              className={`mr-1.5 inline-block h-0.5 w-3 align-middle ${swatches[series[at]?.color ?? 'accent']}`}
            />
            {label} {text}
            {isLastOpen && ' so far'}
          </span>
        ))}
        {marks?.map(({ label, at, color }) => (
          <span key={label}>
            <span
              aria-hidden="true"
              className={`mr-1.5 inline-block w-3 border-t-2 border-dashed align-middle ${markSwatches[color]}`}
            />
            {label} {format(at)}
          </span>
        ))}
      </div>
    </div>
  )
}

/**
 * uPlot formats numbers for the browser's language when it is loaded. Under `LANG=C` Chromium names
 * one without formatting rules, for which that throws.
 */
function nameLanguage(): void {
  try {
    new Intl.NumberFormat(navigator.language)
  } catch {
    Object.defineProperty(navigator, 'language', { value: 'en', configurable: true })
  }
}

const swatches = { accent: 'bg-accent-text', warn: 'bg-warn', bad: 'bg-bad' }
const markSwatches = { warn: 'border-warn', bad: 'border-bad' }

function ChartTable({ title, times, series, areDays, format = plain }: ChartProps) {
  const toExact = useExact()
  const toText = (atMs: number) => (areDays ? toIso(atMs).slice(0, 10) : toExact(atMs))
  return (
    <Table
      columns={[
        { id: 'at', head: 'Time', cell: (at: number) => toText(times[at]!), width: '16rem' },
        ...series.map(({ label, values }) => ({
          id: label,
          head: label,
          numeric: true,
          cell: (at: number) => {
            const value = values[at]
            return value === null || value === undefined ? 'no data' : format(value)
          },
        })),
      ]}
      heightClass="max-h-72"
      label={title}
      rowKey={String}
      rows={times.map((_, at) => at)}
    />
  )
}
