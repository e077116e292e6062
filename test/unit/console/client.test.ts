// The pages call the admin API through generated types.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { endpointAccess } from '#shared/core/operators/roles.ts'
import { writeClientTypes, writeType } from '../../../services/console/serve/client-types.ts'
import { describeAdminApi } from '../../../services/console/serve/describe-admin-api.ts'
import { rolesPage, webFolder } from '../../../services/console/serve/pages-folder.ts'
import { writeRoleTable } from '../../../services/console/serve/role-table.ts'

describe('the pages’ API client', () => {
  it('has the types of the current admin API; npm run generate:client writes them', async () => {
    const made = writeClientTypes(await describeAdminApi())
    expect(made.split('\n').length).toBeGreaterThan(100)
    expect(readFileSync(join(webFolder, 'api/schema.ts'), 'utf8')).toBe(made)
  })

  it('has a table of roles with every endpoint; npm run generate:client writes it', async () => {
    const made = writeRoleTable(await describeAdminApi())
    expect(readFileSync(rolesPage, 'utf8')).toBe(made)
    for (const [name, access] of Object.entries(endpointAccess)) {
      const row = made.split('\n').find((line) => line.includes(`\`${name}\``))
      const [, , least, needs] = (row ?? '').split('|').map((cell) => cell.trim())
      expect(least, name).toBe(access.who === 'public' ? 'anyone' : access.who)
      expect(needs?.includes('step-up'), name).toBe('stepUp' in access)
      expect(needs?.includes('all tenants'), name).toBe('allTenants' in access)
    }
  })

  it.each([
    [{ type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }, '{ a: string }'],
    [{ type: 'object', properties: { 'a-b': { type: 'integer' } } }, '{ "a-b"?: number }'],
    [{ type: 'array', items: { enum: ['x', 'y'] } }, '("x" | "y")[]'],
    [{ anyOf: [{ type: 'boolean' }, { type: 'null' }] }, '(boolean | null)'],
    [{ type: 'object', additionalProperties: { type: 'number' } }, 'Record<string, number>'],
    [{}, 'unknown'],
  ])('writes %j as %s', (schema, type) => {
    expect(writeType(schema)).toBe(type)
  })

  it('rejects a schema that it has no type for', () => {
    expect(() => writeType({ type: 'tuple' })).toThrow('no type for')
  })
})
