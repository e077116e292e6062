/**
 * The compose files are what the Compose Specification allows (its own JSON schema, from the
 * package of a linter), and say what the schema cannot.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { Ajv } from 'ajv'
import { describe, expect, it } from 'vitest'
import { processNames } from '#shared/core/permissions/process-permissions.ts'
import { type ComposeFile, readComposeFile } from '../../support/deploy/compose-file.ts'

const linter = dirname(createRequire(import.meta.url).resolve('dclint/package.json'))
const schema = JSON.parse(
  readFileSync(join(linter, 'schemas/compose.schema.json'), 'utf8'),
) as Record<string, unknown>
// It names draft 7 by another URL than the one that the draft itself has.
const validate = new Ajv({ strict: false, allErrors: true }).compile({
  ...schema,
  $schema: 'http://json-schema.org/draft-07/schema#',
})

function findFaults(file: object): string[] {
  validate(file)
  return (validate.errors ?? []).map(({ instancePath, message, params }) =>
    [instancePath, message, JSON.stringify(params)].join(' '),
  )
}

const files = ['compose.yaml', 'compose.dashboards.yaml']

describe('the Compose Specification', () => {
  it.each(files)('allows %s', (name) => {
    expect(findFaults(readComposeFile(name))).toEqual([])
  })

  it.each<[fault: string, plant: (file: ComposeFile) => object, found: RegExp]>([
    [
      'an unknown key',
      ({ services }) => Object.assign(services.ingest!, { read_onyl: true }),
      /\/services\/ingest .*"read_onyl"/,
    ],
    [
      'a value of a wrong type',
      ({ services }) => Object.assign(services.scorer!, { cap_drop: 'ALL' }),
      /\/services\/scorer\/cap_drop must be array/,
    ],
    [
      'an unknown condition',
      ({ services }) => Object.assign(services.api!.depends_on!.migrate!, { condition: 'done' }),
      /\/services\/api\/depends_on.*allowedValues/,
    ],
  ])('refuses %s', (_, plant, found) => {
    const file = readComposeFile()
    plant(file)
    expect(findFaults(file).join('\n')).toMatch(found)
  })
})

describe('what the schema cannot know', () => {
  const all = files.map((name) => readComposeFile(name))
  const services = all.flatMap((file) => Object.entries(file.services))
  const declared = (part: 'networks' | 'secrets' | 'volumes') =>
    all.flatMap((file) => Object.keys(file[part] ?? {}))

  it('every network, secret and service that a service names is declared', () => {
    for (const [name, { networks = [], secrets = [], depends_on = {} }] of services) {
      expect(declared('networks'), name).toEqual(expect.arrayContaining(networks))
      expect(declared('secrets'), name).toEqual(expect.arrayContaining(secrets))
      const others = services.map(([other]) => other)
      expect(others, name).toEqual(expect.arrayContaining(Object.keys(depends_on)))
    }
  })

  it('every duration and size has a unit', () => {
    for (const [name, { healthcheck = {}, mem_limit, stop_grace_period }] of services) {
      const { interval, timeout, disable } = healthcheck as Record<string, unknown>
      const durations = [interval, timeout, stop_grace_period].filter((one) => one !== undefined)
      if (disable !== true) expect(durations.length, name).toBeGreaterThan(1)
      for (const one of durations) expect(one, name).toMatch(/^\d+(ms|s|m)$/)
      expect(mem_limit, name).toMatch(/^\d+[mg]$/)
    }
  })

  /** `npm run faults -- image` runs the image with these settings. */
  it.each(processNames)('%s has a read-only root, /tmp and no rights', (name) => {
    expect(readComposeFile().services[name]).toMatchObject({
      read_only: true,
      tmpfs: ['/tmp'],
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      init: true,
      stop_grace_period: '12s',
    })
    for (const right of ['user', 'privileged', 'cap_add', 'pid', 'devices']) {
      expect(readComposeFile().services[name]).not.toHaveProperty(right)
    }
  })
})
