/**
 * The operators' dashboard, which the README's scale plan points at: every figure on it is one that
 * the processes have.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import dashboard from '../../deploy/grafana/operations.json' with { type: 'json' }

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Everything that the services are made of. */
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

describe('the operators’ dashboard', () => {
  const sources = readSources()

  it.each(expressions)('$title: has only metrics that exist', ({ expr }) => {
    const names = (expr.match(/\b(?:di|process)_[a-z_]+/g) ?? []).map((name) =>
      name.replace(/_(bucket|sum|count)$/, ''),
    )
    expect(names.length).toBeGreaterThan(0)
    for (const name of names.filter((one) => one.startsWith('di_'))) {
      expect(sources).toContain(`'${name}'`)
    }
  })

  it('has every figure that the README’s scale plan names', () => {
    const readme = readFileSync(`${root}/README.md`, 'utf8')
    const plan = readme.slice(readme.indexOf('## Scale'), readme.indexOf('## Glossary'))
    const all = expressions.map(({ expr }) => expr).join('\n')
    const named = [...plan.matchAll(/`(di_[a-z_]+)`/g)].map(([, name]) => name!)
    expect(named.length).toBeGreaterThan(3)
    for (const name of named) expect(all).toContain(name)
  })
})
