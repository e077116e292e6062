// The views of analysts as `migrate` runs them: their files with what is computed filled in.
import { beforeAll, describe, expect, it } from 'vitest'
import {
  formerNames,
  renderView,
  toFormerComment,
  toViewParts,
  withDefiner,
} from '#shared/core/analytics/view-sql.ts'
import { splitStatements } from '#shared/core/base/sql-statements.ts'
import { categories } from '#shared/core/signals/signal-definition.ts'
import { signalCatalog } from '#shared/core/signals/signals.ts'
import { sqlFolders } from '#shared/io/migrations/migration-files.ts'
import { readViews, renderViewVersion, type View } from '#shared/io/migrations/view-files.ts'

let views: View[]
beforeAll(async () => {
  ;({ views } = await readViews(sqlFolders.clickhouse))
})
const textOf = (name: string) => views.find((view) => view.name === name)!.text

describe('a view', () => {
  it('is one statement, reads no other view, and has no part left out', () => {
    const begin = '{analytics:Identifier}.'
    for (const { name, text } of views) {
      expect([name, splitStatements(text).length]).toEqual([name, 1])
      expect([name, text.split(begin).length - 1]).toEqual([name, 1])
      expect([name, text]).toEqual([name, expect.not.stringMatching(/\{\{|\}\}/)])
      expect(withDefiner(text, 'reader')).toMatch(/ definer = reader sql security definer as$/m)
    }
  })

  it('with an unknown part is an error', () => {
    expect(renderView('select {{a}}', { a: '1' })).toBe('select 1')
    expect(() => renderView('select {{b}}', { a: '1' })).toThrow('the name b')
  })

  it('has a typed column for every signal', () => {
    const text = textOf('typed_events')
    for (const category of categories) {
      for (const name of Object.keys(signalCatalog[category])) {
        const column = `\`signals.${category}.${name}\``
        expect(text.split(column).length - 1, column).toBe(2)
      }
    }
    const fresh = { ...signalCatalog.root.su_binary, description: "It's new." }
    const { signal_columns: columns } = toViewParts({ root: { fresh } })
    expect(columns).toBe("`signals.root.fresh` Nullable(Bool) comment 'It''s new.'")
  })

  it.each(Object.entries(formerNames))('%s is %s under its former name', (formerName, name) => {
    const ending = `comment '${toFormerComment(name)}';\n`
    const text = textOf(formerName)
    expect(text.endsWith(ending)).toBe(true)
    const body = text.slice(0, -ending.length).replace(`.${formerName} `, `.${name} `)
    expect(textOf(name).startsWith(body)).toBe(true)
  })
})

it('the version rises when a view changes, and stays otherwise', () => {
  const first = renderViewVersion(views, null)
  expect(first).toContain('\nversion 1\n')
  expect(renderViewVersion(views, first)).toBe(first)
  const [view, ...others] = views
  const changed = [{ ...view!, checksum: 'another' }, ...others]
  const second = renderViewVersion(changed, first)
  expect(second).toContain('\nversion 2\n')
  // To an earlier text it is a change as well.
  expect(renderViewVersion(views, second)).toContain('\nversion 3\n')
})
