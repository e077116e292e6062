// What compose.yaml says agrees with the files beside it and with the table of rights.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  type ProcessName,
  processNames,
  processPermissions,
  secretVariables,
} from '#shared/core/permissions/process-permissions.ts'
import { readComposeFile } from '../../support/deploy/compose-file.ts'

const projectDir = join(import.meta.dirname, '../../..')
const compose = readComposeFile()
const service = (name: string) => compose.services[name]!

describe('compose.yaml', () => {
  test('mounts existing files and declared volumes', () => {
    for (const [name, { volumes = [] }] of Object.entries(compose.services)) {
      for (const volume of volumes) {
        const [source = ''] = volume.split(':')
        if (source.startsWith('.')) {
          expect(existsSync(join(projectDir, 'deploy', source)), `${name}: ${source}`).toBe(true)
        } else expect(Object.keys(compose.volumes)).toContain(source)
      }
    }
    for (const name of ['nats', 'postgres', 'clickhouse']) {
      expect(service(name).image).toMatch(/:\d+\.\d+/)
    }
  })

  test('passes every secret as a file, only to services that list it, and none as a value', () => {
    for (const [name, { environment = {}, secrets = [] }] of Object.entries(compose.services)) {
      for (const [variable, value] of Object.entries(environment)) {
        if (value.startsWith('/run/secrets/')) {
          expect(variable, name).toMatch(/_FILE$/)
          expect(secrets, name).toContain(fileName(value))
        } else if (!variable.startsWith('PUBLIC_')) {
          expect(variable, name).not.toMatch(/_URL$|TOKEN|KEY|PASSWORD/)
        }
      }
      for (const secret of secrets) expect(Object.keys(compose.secrets)).toContain(secret)
    }
  })

  test('publishes no port beyond this machine by default', () => {
    const ports = Object.values(compose.services).flatMap((one) => one.ports ?? [])
    expect(ports.map((port) => port.split(':').at(-1))).toEqual(['8080', '8081', '8082'])
    for (const port of ports) expect(port).toMatch(/^\$\{BIND_ADDRESS:-127\.0\.0\.1\}:/)
  })
})

test('every container is in the networks of its stores and no others, within bounds', () => {
  const stores = ['nats', 'postgres', 'clickhouse'] as const
  for (const name of [...processNames, ...stores]) {
    const { networks = [], mem_limit, pids_limit } = service(name)
    expect(mem_limit, name).toMatch(/^\d+[mg]$/)
    expect(pids_limit, name).toBeGreaterThan(0)
    const used = stores.filter((store) =>
      name in processPermissions
        ? processPermissions[name as ProcessName][store] !== null
        : store === name,
    )
    const inner = networks.filter((network) => network !== 'outside')
    expect(inner, name).toEqual(used.map((store) => `${store}-only`))
  }
  const closed = Object.entries(compose.networks).filter(([, network]) => network?.internal)
  expect(closed.map(([name]) => name)).toEqual(stores.map((store) => `${store}-only`))
})

test('every container has the secrets of its process and no others', () => {
  for (const name of processNames) {
    const own = Object.keys(service(name).environment ?? {})
    for (const secret of secretVariables) {
      if (own.includes(`${secret}_FILE`))
        expect(processPermissions[name].secrets, name).toContain(secret)
    }
    for (const store of ['nats', 'postgres', 'clickhouse'] as const) {
      const urls = (service(name).secrets ?? []).filter((one) => one.startsWith(`${store}_url`))
      expect(urls).toEqual(processPermissions[name][store] === null ? [] : [`${store}_url_${name}`])
    }
  }
})

const fileName = (path: string) => path.replace('/run/secrets/', '')

test('a process starts after the migrations, and they start after healthy servers', () => {
  for (const [name, { depends_on = {} }] of Object.entries(compose.services)) {
    const conditions = Object.entries(depends_on).map(([needed, { condition }]) => {
      const job = service(needed).healthcheck?.disable === true
      expect(condition, name).toBe(job ? 'service_completed_successfully' : 'service_healthy')
      return needed
    })
    if (name === 'migrate') expect(conditions).toEqual(['nats', 'postgres', 'clickhouse'])
    else if (service(name).build !== undefined) expect(conditions).toEqual(['migrate'])
  }
})
