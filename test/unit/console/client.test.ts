// The pages call the admin API through generated types.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { writeClientTypes, writeType } from '../../../services/console/serve/client-types.ts'
import { describeAdminApi } from '../../../services/console/serve/describe-admin-api.ts'
import { webFolder } from '../../../services/console/serve/pages-folder.ts'

describe('the pages’ API client', () => {
  it('has the types of the current admin API; npm run generate:client writes them', async () => {
    const made = writeClientTypes(await describeAdminApi())
    expect(made.split('\n').length).toBeGreaterThan(100)
    expect(readFileSync(join(webFolder, 'api/schema.ts'), 'utf8')).toBe(made)
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
