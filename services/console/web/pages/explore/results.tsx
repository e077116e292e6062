/** The answer of a query: a table, a simple chart, and all of it as a CSV. */
import { useMemo } from 'react'
import { toVisible } from '#shared/core/base/visible-text.ts'
import type { AnswerOf } from '../../api/client.ts'
import { Chart } from '../../components/chart/chart.tsx'
import { useUrlState } from '../../components/state/url-state.ts'
import { Empty } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { IdCell, isId } from './id-cell.tsx'

export type Rows = AnswerOf<'/admin/v1/tenants/{tenant_id}/sql', 'post'>

const numberType = /^(?:Nullable\(|LowCardinality\()*(?:U?Int|Float|Decimal)/
const timeType = /^(?:Nullable\(|LowCardinality\()*Date/
/** A day without a time, and so without a zone. */
const dayType = /^(?:Nullable\(|LowCardinality\()*Date(?:32)?\)*$/
const columnsShown = 60
const barsMax = 40
const linesMax = 3
const colors = ['accent', 'warn', 'bad'] as const

const toCell = (value: unknown): string => {
  if (value === null) return 'null'
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

export function ResultTable({ tenant, rows: { columns, rows } }: { tenant: string; rows: Rows }) {
  const shown = useMemo(
    () =>
      columns.slice(0, columnsShown).map(
        ({ name, type }, at): Column<number> => ({
          id: `${at} ${name}`,
          head: <span title={type}>{name}</span>,
          numeric: numberType.test(type),
          cell: (row) => {
            const text = toCell(rows[row]?.[at])
            const value = rows[row]?.[at]
            if (isId(name) && typeof value === 'string' && value !== '') {
              return <IdCell name={name} tenant={tenant} value={value} />
            }
            return (
              <span
                className={text === 'null' ? 'text-muted' : ''}
                title={toVisible(text.slice(0, 1_000))}
                translate="no"
              >
                {toVisible(text.slice(0, 200))}
              </span>
            )
          },
        }),
      ),
    [columns, rows, tenant],
  )
  const indexes = useMemo(() => rows.map((_, at) => at), [rows])
  if (rows.length === 0) {
    return (
      <Empty title="The query has no rows">
        Widen its conditions or its time, and run it again.
      </Empty>
    )
  }
  return (
    <Table
      columns={shown}
      heightClass="max-h-[32rem]"
      label="Rows of the query"
      minWidth={`${Math.max(30, shown.length * 9)}rem`}
      rowKey={String}
      rows={indexes}
    />
  )
}

export function ResultChart({ rows }: { rows: Rows }) {
  const numbers = rows.columns.flatMap(({ name, type }, at) =>
    numberType.test(type) ? [{ name, at }] : [],
  )
  const timeAt = rows.columns.findIndex(({ type }) => timeType.test(type))
  if (numbers.length === 0 || rows.rows.length === 0) {
    return (
      <Empty title="There is nothing to draw">
        A chart needs a column of numbers, and a column of times or names beside it.
      </Empty>
    )
  }
  return timeAt >= 0 ? (
    <TimeChart numbers={numbers.slice(0, linesMax)} rows={rows} timeAt={timeAt} />
  ) : (
    <Bars numbers={numbers} rows={rows} />
  )
}

type Numbers = { name: string; at: number }[]

function TimeChart({ rows, timeAt, numbers }: { rows: Rows; timeAt: number; numbers: Numbers }) {
  const { times, series } = useMemo(() => {
    const points = rows.rows
      .map((row) => ({ at: Date.parse(String(row[timeAt])), row }))
      .filter(({ at }) => !Number.isNaN(at))
      .sort((a, b) => a.at - b.at)
    return {
      times: points.map(({ at }) => at),
      series: numbers.map(({ name, at: column }, at) => ({
        label: name,
        color: colors[at]!,
        values: points.map(({ row }) => (row[column] === null ? null : Number(row[column]))),
      })),
    }
  }, [rows, timeAt, numbers])
  return (
    <div className="p-4">
      <Chart
        areDays={dayType.test(rows.columns[timeAt]!.type)}
        height={280}
        series={series}
        times={times}
        title={`${numbers.map(({ name }) => name).join(', ')} by ${rows.columns[timeAt]!.name}`}
      />
    </div>
  )
}

/** The first column that is no number names the bars; which number they show is in the URL. */
function Bars({ rows, numbers }: { rows: Rows; numbers: Numbers }) {
  const [chosen, choose] = useUrlState('measure', numbers[0]!.name)
  const measure = numbers.find(({ name }) => name === chosen) ?? numbers[0]!
  const nameAt = rows.columns.findIndex(({ type }) => !numberType.test(type))
  const bars = rows.rows.slice(0, barsMax).map((row, at) => ({
    key: `${at}`,
    name: nameAt < 0 ? `row ${at + 1}` : toVisible(toCell(row[nameAt])),
    value: Number(row[measure.at] ?? 0),
  }))
  const most = Math.max(...bars.map(({ value }) => Math.abs(value)), 0)
  return (
    <div className="grid gap-3 p-4">
      {numbers.length > 1 && (
        <label className="flex items-center gap-2">
          Show
          <select
            className="h-8 rounded-md border border-line-strong bg-raised px-2.5"
            onChange={({ target }) => choose(target.value)}
            value={measure.name}
          >
            {numbers.map(({ name }) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      )}
      <ol aria-label={`${measure.name} by row`} className="grid gap-1">
        {bars.map(({ key, name, value }) => (
          <li className="grid grid-cols-[minmax(0,14rem)_1fr_auto] items-center gap-3" key={key}>
            <span className="truncate" title={name}>
              {name}
            </span>
            <span className="h-4">
              <span
                className="block h-full rounded-sm bg-accent"
                style={{ width: `${most === 0 ? 0 : (Math.abs(value) / most) * 100}%` }}
              />
            </span>
            <span className="text-right">{value.toLocaleString('en')}</span>
          </li>
        ))}
      </ol>
      {rows.rows.length > barsMax && (
        <p className="text-muted text-sm">
          The first {barsMax} of {rows.rows.length} rows.
        </p>
      )}
    </div>
  )
}
