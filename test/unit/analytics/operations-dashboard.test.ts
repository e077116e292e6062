/**
 * Every metric in the operators' dashboard (deploy/grafana/README.md) and in the alert rules exists
 * in the processes.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import dashboard from '../../../deploy/grafana/provisioning/dashboards/operations.json' with {
  type: 'json',
}

const root = fileURLToPath(new URL('../../..', import.meta.url))

/** Source text of all services. */
function readSources(): string {
  return ['services', 'shared']
    .flatMap((folder) =>
      readdirSync(`${root}/${folder}`, { recursive: true, encoding: 'utf8' })
        .filter((file) => file.endsWith('.ts'))
        .map((file) => readFileSync(`${root}/${folder}/${file}`, 'utf8')),
    )
    .join('\n')
}

const expressions = dashboard.panels.flatMap(({ title, targets }) =>
  targets.map(({ expr }) => ({ title, expr })),
)

const sources = readSources()

/** Metrics of the service, of a Node process, of Prometheus itself and of its usual exporters. */
const metricPattern = /\b(?:up\b|(?:di|process|node|probe)_[a-z_]+)/g

function expectKnownMetrics(expr: string): void {
  const names = (expr.match(metricPattern) ?? []).map((name) =>
    name.replace(/_(bucket|sum|count)$/, ''),
  )
  expect(names.length).toBeGreaterThan(0)
  for (const name of names.filter((one) => one.startsWith('di_'))) {
    expect(sources).toContain(`'${name}'`)
  }
}

describe('the operators’ dashboard', () => {
  it.each(expressions)('$title: has only metrics that exist', ({ expr }) => {
    expectKnownMetrics(expr)
  })

  it('has every metric that the plan for scaling names', () => {
    const plan = readFileSync(`${root}/deploy/grafana/README.md`, 'utf8')
    const all = expressions.map(({ expr }) => expr).join('\n')
    const named = [...plan.matchAll(/`(di_[a-z_]+)`/g)].map(([, name]) => name!)
    expect(named.length).toBeGreaterThan(3)
    for (const name of named) expect(all).toContain(name)
  })
})

describe('the alert rules', () => {
  const file = `${root}/deploy/prometheus/alerts.yaml`
  type Rule = { alert: string; expr: string; labels: { severity: string }; annotations: object }
  const { groups } = parse(readFileSync(file, 'utf8')) as { groups: { rules: Rule[] }[] }
  const rules = groups.flatMap((group) => group.rules)

  it.each(rules)('$alert: has only metrics that exist, a severity and a summary', (rule) => {
    expectKnownMetrics(rule.expr)
    expect(rule.labels.severity).toMatch(/^(info|warning|critical)$/)
    expect(rule.annotations).toHaveProperty('summary')
  })

  it('each have a case in test/vectors/prometheus-alerts.yaml in which they fire', () => {
    type Case = { alertname: string; exp_alerts: unknown[] }
    const { tests } = parse(
      readFileSync(`${root}/test/vectors/prometheus-alerts.yaml`, 'utf8'),
    ) as { tests: { alert_rule_test: Case[] }[] }
    const fired = tests
      .flatMap((one) => one.alert_rule_test)
      .filter((one) => one.exp_alerts.length > 0)
      .map((one) => one.alertname)
    expect([...new Set(fired)].sort()).toEqual(rules.map((rule) => rule.alert).sort())
  })
})
