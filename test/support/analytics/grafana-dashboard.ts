/**
 * The Grafana dashboard, made from the cookbook's own files: for questions that benefit from a
 * chart, the cookbook's query with Grafana's variables in place of the parameters.
 */
import type { Question } from '#shared/io/analytics/cookbook.ts'

type Panel = {
  /** The question's name without its number. */
  question: string
  title: string
  type: 'barchart' | 'timeseries' | 'table'
  /** The drawn columns of the answer: the first one is the axis. */
  draw: string
  unit?: string
  width: number
  height: number
}

/** A variable that Grafana fills in. */
export const variable = (name: string): string => `\${${name}}`

const panels: Panel[] = [
  {
    question: 'vpn-share-by-hour',
    title: 'VPN share by hour of the day (UTC)',
    draw: "concat(leftPad(toString(hour), 2, '0'), ':00') as hour, share",
    type: 'barchart',
    unit: 'percentunit',
    width: 12,
    height: 8,
  },
  {
    question: 'signal-share-by-day',
    title: `Share of ${variable('signal')} by SDK version`,
    draw: "toDateTime(day, 'UTC') as time, concat(platform, ' ', sdk_version) as version, share",
    type: 'timeseries',
    unit: 'percentunit',
    width: 12,
    height: 8,
  },
  {
    question: 'top-reasons',
    title: 'Alerts by reason: earlier and later half',
    draw: 'reason, earlier, later',
    type: 'barchart',
    width: 12,
    height: 9,
  },
  {
    question: 'precision-per-flag',
    title: 'Precision per flag, with its 95 % range',
    draw: 'flag, low, precision, high',
    type: 'barchart',
    unit: 'percentunit',
    width: 12,
    height: 9,
  },
  {
    question: 'time-to-first-alert',
    title: 'From first session to first alert',
    draw: 'time_to_first_alert, devices',
    type: 'barchart',
    width: 8,
    height: 8,
  },
  {
    question: 'emulators-by-version',
    title: 'Emulators by SDK version',
    draw: "concat(platform, ' ', sdk_version) as version, share",
    type: 'barchart',
    unit: 'percentunit',
    width: 8,
    height: 8,
  },
  {
    question: 'noisy-hours',
    title: 'Noisy hours',
    draw: 'hour, alerts, times_usual, devices, leading_reason',
    type: 'table',
    width: 8,
    height: 8,
  },
  {
    question: 'signal-jumped-with-a-release',
    title: 'Signals that stand out on one SDK version',
    draw: 'platform, sdk_version, signal, devices, share, share_elsewhere',
    type: 'table',
    width: 24,
    height: 8,
  },
]

const datasource = { type: 'grafana-clickhouse-datasource', uid: variable('datasource') }

/** The dashboard as JSON text, which Grafana provisions. @throws when a question is not in the cookbook */
export function toDashboard(questions: readonly Question[]): string {
  let x = 0
  let y = 0
  let row = 0
  const placed = panels.map((panel, at) => {
    if (x + panel.width > 24) {
      x = 0
      y += row
      row = 0
    }
    const place = { x, y, w: panel.width, h: panel.height }
    x += panel.width
    row = Math.max(row, panel.height)
    return toPanel(panel, at + 1, place, questions)
  })
  const dashboard = {
    title: 'Fraud: devices, signals, alerts',
    uid: 'device-intelligence-fraud',
    tags: ['device-intelligence'],
    schemaVersion: 39,
    version: 1,
    editable: true,
    timezone: 'utc',
    time: { from: 'now-7d', to: 'now' },
    refresh: '',
    templating: { list: variables },
    panels: placed,
  }
  return `${JSON.stringify(dashboard, null, 2)}\n`
}

const variables = [
  {
    name: 'datasource',
    label: 'ClickHouse',
    type: 'datasource',
    query: 'grafana-clickhouse-datasource',
  },
  {
    name: 'tenant',
    label: 'Tenant',
    type: 'query',
    datasource: { type: 'grafana-clickhouse-datasource', uid: variable('datasource') },
    // An analyst sees the own tenant alone, so the first is the one.
    query: 'select distinct tenant_id from analytics.devices order by tenant_id limit 100',
    refresh: 1,
    sort: 0,
    multi: false,
    includeAll: false,
  },
  { name: 'signal', label: 'Signal', type: 'textbox', query: 'network.vpn_active' },
]

function toPanel(
  { question, title, type, draw, unit }: Panel,
  id: number,
  gridPos: { x: number; y: number; w: number; h: number },
  questions: readonly Question[],
) {
  const found = questions.find(({ name }) => name.slice(3) === question)
  if (found === undefined) throw new Error(`the cookbook has no ${question}`)
  const series = type === 'timeseries'
  return {
    id,
    type,
    title,
    description: found.answer,
    datasource,
    gridPos,
    fieldConfig: { defaults: unit === undefined ? {} : { unit }, overrides: [] },
    options: type === 'barchart' ? { xTickLabelRotation: -45, legend: { showLegend: true } } : {},
    targets: [
      {
        refId: 'A',
        datasource,
        editorType: 'sql',
        queryType: type,
        format: series ? 0 : 1,
        rawSql: `select ${draw} from (\n${fillIn(found)}\n)`,
      },
    ],
    // One row per day and version becomes one line per version.
    ...(series
      ? { transformations: [{ id: 'prepareTimeSeries', options: { format: 'multi' } }] }
      : {}),
  }
}

/** Replaces parameters by Grafana's variables; Grafana quotes text that people type. */
function fillIn({ sql, parameters }: Question): string {
  return sql.replace(/\{(\w+):([^}]+)\}/g, (_, name: string, type: string) => {
    if (name === 'tenant' || name === 'signal') return variable(`${name}:singlequote`)
    if (name === 'from' || name === 'to') {
      return `fromUnixTimestamp64Milli(toInt64(${variable(`__${name}`)}), 'UTC')`
    }
    const value = parameters[name]
    if (value === undefined) throw new Error(`${name} has no value`)
    return `to${type}(${value})`
  })
}
