// Files that are made from others are as `npm run generate` makes them. The pages about the views,
// which need a database, are compared in test/integration/analytics/cookbook.test.ts.
import { describe, expect, it } from 'vitest'
import { generatedFiles, generatedPages, readGenerated, toStaleText } from '../../generate/files.ts'

describe('generated files', () => {
  it.each(Object.entries(generatedFiles))('%s is not stale', async (path, render) => {
    expect(readGenerated(path) === (await render()), toStaleText(path)).toBe(true)
  })

  const commented = [...Object.keys(generatedFiles), ...Object.keys(generatedPages)].filter(
    (path) => !path.endsWith('.json'),
  )
  it.each(commented)('%s says so in its first line', (path) => {
    expect(readGenerated(path)!.split('\n')[0]).toContain('`npm run generate`')
  })

  it('the types of the console’s client have lines that a person can read', () => {
    const lines = readGenerated('services/console/web/api/schema.ts')!.split('\n')
    expect(lines.filter((line) => line.length > 120)).toEqual([])
  })
})
