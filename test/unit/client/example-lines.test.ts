// How much code an integrator needs in each language: the table in ingest's README is counted here.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const services = join(import.meta.dirname, '../../../services')

const languages: Record<string, string> = {
  cs: 'C#',
  dart: 'Dart',
  go: 'Go',
  java: 'Java',
  kt: 'Kotlin',
  php: 'PHP',
  py: 'Python',
  rb: 'Ruby',
  swift: 'Swift',
}

/** Lines of a program without empty ones and comments. */
function countLines(folder: string, extension: string): number {
  const [file, ...others] = readdirSync(folder).filter((name) => name.endsWith(`.${extension}`))
  if (file === undefined || others.length > 0) throw new Error(`not one ${extension} in ${folder}`)
  const lines = readFileSync(join(folder, file), 'utf8').split('\n')
  return lines.filter((line) => !/^\s*(\/\/|# |"""|<\?php$|$)/.test(line)).length
}

it('ingest’s README has the lines of code that each language needs', () => {
  const rows = Object.entries(languages).map(([extension, language]) => {
    const send = countLines(join(services, 'ingest/examples'), extension)
    const verify = countLines(join(services, 'delivery/examples'), extension)
    return `| ${language.padEnd(8)} | ${`${send}`.padEnd(13)} | ${`${verify}`.padEnd(16)} |`
  })
  const table = [
    '| language | sign and send | verify a webhook |',
    `| -------- | ${'-'.repeat(13)} | ${'-'.repeat(16)} |`,
    ...rows,
  ]
  expect(readFileSync(join(services, 'ingest/README.md'), 'utf8')).toContain(table.join('\n'))
})
