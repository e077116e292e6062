// Grafana's provisioning needs no hand: what its files and compose.dashboards.yaml name is there.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { parseAnalystUser } from '#shared/core/analytics/analyst-access.ts'

const root = join(import.meta.dirname, '../../..')
const deploy = join(root, 'deploy')
const read = (path: string): string => readFileSync(join(deploy, path), 'utf8')
const parseYaml = <T>(path: string): T => parse(read(path), { merge: true }) as T

type Service = {
  image: string
  networks: string[]
  environment?: Record<string, string>
  volumes: string[]
  secrets?: string[]
  ports?: string[]
  mem_limit: string
  pids_limit: number
}
type Compose = {
  services: Record<string, Service>
  volumes: Record<string, null>
  secrets: Record<string, { file: string }>
}
type DataSource = { uid: string; type: string; isDefault?: boolean; jsonData?: object }
type Variable = { name: string; type: string; query: string }
type Dashboard = {
  uid: string
  templating: { list: Variable[] }
  panels: { datasource: { type: string; uid: string } }[]
}

const base = parseYaml<Compose>('compose.yaml')
const compose = parseYaml<Compose>('compose.dashboards.yaml')
const grafana = compose.services.grafana!
const provisioning = '/etc/grafana/provisioning'
const { datasources } = parseYaml<{ datasources: DataSource[] }>(
  'grafana/provisioning/datasources/device-intelligence.yaml',
)
const dashboards = readdirSync(join(deploy, 'grafana/provisioning/dashboards'))
  .filter((file) => file.endsWith('.json'))
  .map((file) => JSON.parse(read(`grafana/provisioning/dashboards/${file}`)) as Dashboard)

describe('compose.dashboards.yaml', () => {
  it('mounts what is there, with images of exact versions and bounds', () => {
    for (const [name, { image, volumes, mem_limit, pids_limit }] of Object.entries(
      compose.services,
    )) {
      expect(image, name).toMatch(/^\$\{[A-Z]+_IMAGE:-[a-z/]+:v?\d+\.\d+\.\d+\}$/)
      expect([name, mem_limit, pids_limit > 0]).toEqual([
        name,
        expect.stringMatching(/^\dg$/),
        true,
      ])
      for (const volume of volumes) {
        const [source = ''] = volume.split(':')
        if (source.startsWith('.')) expect(existsSync(join(deploy, source)), source).toBe(true)
        else expect(Object.keys(compose.volumes)).toContain(source)
      }
    }
    expect(grafana.volumes).toContain(`./grafana/provisioning:${provisioning}:ro`)
  })

  it('publishes Grafana alone, on this machine by default', () => {
    const ports = Object.values(compose.services).flatMap((one) => one.ports ?? [])
    expect(ports).toEqual(['${BIND_ADDRESS:-127.0.0.1}:3000:3000'])
  })

  it('reads metrics of every process that has them, in networks where it can', () => {
    type Scrapes = { scrape_configs: { static_configs: { targets: string[] }[] }[] }
    const { scrape_configs } = parseYaml<Scrapes>('prometheus/prometheus.yaml')
    const targets = scrape_configs.flatMap((one) => one.static_configs.flatMap((s) => s.targets))
    const own = compose.services.prometheus!.networks
    const expected = ['ingest', 'api', 'console', 'scorer', 'delivery'].map((name) => {
      const { environment = {}, networks } = base.services[name]!
      const listen =
        environment[`${name.toUpperCase()}_INTERNAL_LISTEN`] ??
        environment[`${name.toUpperCase()}_LISTEN`]!
      expect(
        networks.some((network) => own.includes(network)),
        name,
      ).toBe(true)
      return `${name}:${listen.split(':').at(-1)}`
    })
    expect(targets).toEqual(expected)
  })
})

describe('Grafana', () => {
  it('has a value for every variable and file that its data sources name', () => {
    const text = read('grafana/provisioning/datasources/device-intelligence.yaml')
    const variables = [...text.matchAll(/\$([A-Z]\w+)/g)].map(([, name]) => name!)
    expect(variables.length).toBeGreaterThan(3)
    for (const name of variables) expect(Object.keys(grafana.environment!)).toContain(name)
    const files = [...text.matchAll(/\$__file\{\/run\/secrets\/(\w+)\}/g)].map(([, name]) => name!)
    expect(files).toEqual(['grafana_analyst_password'])
    for (const name of [...files, 'grafana_admin_password']) {
      expect(grafana.secrets).toContain(name)
      expect(compose.secrets[name]!.file).toBe(`./secrets/${name}`)
    }
    expect(read('make-secrets.sh')).toContain('once grafana_admin_password')
  })

  it('signs in as the analyst that the README makes, within the limits of analysts', () => {
    const readme = read('grafana/README.md')
    const [, tenantId, name] = /analysts create (\S+) --name (\S+)/.exec(readme)!
    const user = /GRAFANA_ANALYST=(\S+)/.exec(readme)![1]!
    expect(parseAnalystUser(user)).toEqual({ tenantId, name })
    const analyst = datasources.find(({ uid }) => uid === 'device-intelligence-analyst')!
    // The driver adds five seconds to it, and an analyst may not ask for more than 30.
    const { queryTimeout } = analyst.jsonData as { queryTimeout: string }
    expect(Number(queryTimeout) + 5).toBeLessThanOrEqual(30)
  })

  it('finds both dashboards where they are mounted, and a data source for every panel', () => {
    const { providers } = parseYaml<{ providers: { options: { path: string } }[] }>(
      'grafana/provisioning/dashboards/device-intelligence.yaml',
    )
    expect(providers.map(({ options }) => options.path)).toEqual([`${provisioning}/dashboards`])
    expect(grafana.environment!.GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH).toBe(
      `${provisioning}/dashboards/fraud.json`,
    )
    expect(dashboards.map(({ uid }) => uid).sort()).toEqual([
      'device-intelligence-fraud',
      'device-intelligence-operations',
    ])
    for (const { panels, templating } of dashboards) {
      const chosen = templating.list.find(({ type }) => type === 'datasource')!
      const sources = datasources.filter(({ type }) => type === chosen.query)
      expect([chosen.query, sources.length]).toEqual([chosen.query, 1])
      for (const { datasource } of panels) {
        expect(datasource).toEqual({ type: chosen.query, uid: '${datasource}' })
      }
    }
  })

  it('has no variable that a person must fill in first', () => {
    for (const { templating } of dashboards) {
      for (const { name, type, query } of templating.list) {
        expect([name, type === 'textbox' && query === '']).toEqual([name, false])
      }
    }
  })
})
