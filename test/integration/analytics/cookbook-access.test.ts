// The cookbook for an analyst of the local stack: every question runs unchanged within the
// analyst's limits, and returns nothing of another tenant.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Question, readCookbook } from '#shared/io/analytics/cookbook.ts'
import dashboard from '../../../deploy/grafana/provisioning/dashboards/fraud.json' with {
  type: 'json',
}
import { type AnalystsRig, createAnalystsRig } from '../../support/analytics/analysts-rig.ts'

let rig: AnalystsRig
beforeAll(async () => {
  rig = await createAnalystsRig()
})
afterAll(() => rig?.close())

const wide = { from: '2020-01-01 00:00:00.000', to: '2100-01-01 00:00:00.000' }

function runQuestion({ sql, parameters }: Question, tenant: string) {
  const given = Object.entries({ ...wide, ...parameters, tenant })
  const params = Object.fromEntries(given.map(([name, value]) => [`param_${name}`, value]))
  return rig.runQuery({ query: sql, params: { ...params, wait_end_of_query: '1' } })
}

it.each(readCookbook())('an analyst may run $name for the own tenant', async (question) => {
  const { status, text } = await runQuestion(question, 'acme')
  expect([status, status === 200 ? '' : text]).toEqual([200, ''])
})

it('an analyst gets nothing of another tenant by naming it', async () => {
  for (const question of readCookbook()) {
    const { status, text } = await runQuestion(question, 'globex')
    expect([question.name, status, text]).toEqual([question.name, 200, ''])
  }
})

it('some questions return rows of the rig', async () => {
  const found = []
  for (const question of readCookbook()) {
    if ((await runQuestion(question, 'acme')).text !== '') found.push(question.name)
  }
  expect(found.length).toBeGreaterThanOrEqual(5)
})

it('an analyst may run every query of the dashboard, as Grafana fills it in', async () => {
  const variables = dashboard.templating.list.filter(({ type }) => type === 'query')
  expect(variables.map(({ name }) => name)).toEqual(['tenant'])
  const offered = await rig.runQuery({ query: variables[0]!.query })
  expect([offered.status, offered.text]).toEqual([200, 'acme\n'])
  for (const { title, targets } of dashboard.panels) {
    const query = targets[0]!.rawSql
      .replaceAll('${tenant:singlequote}', `'acme'`)
      .replaceAll('${signal:singlequote}', `'root.su_binary'`)
      .replaceAll('${__from}', String(Date.now() - 3_600_000))
      .replaceAll('${__to}', String(Date.now()))
    const { status, text } = await rig.runQuery({ query, params: { max_execution_time: '25' } })
    expect([title, status, status === 200 ? '' : text]).toEqual([title, 200, ''])
  }
})
