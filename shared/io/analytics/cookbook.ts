/**
 * Reads the questions of the cookbook. Each is a file of `clickhouse/cookbook/`: a comment with the
 * question, the meaning of its answer and what to do, then one query with named parameters.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export type Question = {
  /** The file's name without its ending: `06-became-rooted`. */
  name: string
  question: string
  answer: string
  advice: string
  /** Parameters beside tenant, from and to, with their default values. */
  parameters: Record<string, string>
  sql: string
}

const folder = fileURLToPath(new URL('../../../clickhouse/cookbook/', import.meta.url))

/** All questions in order. @throws when a file is not of the form */
export function readCookbook(): Question[] {
  return readdirSync(folder)
    .sort()
    .map((file) => parseQuestion(file, readFileSync(`${folder}${file}`, 'utf8')))
}

function parseQuestion(file: string, text: string): Question {
  const lines = text.trimEnd().split('\n')
  const end = lines.findIndex((line) => !line.startsWith('--'))
  const head = lines.slice(0, end).map((line) => line.slice(3))
  const [question, answer, advice, parameters] = [
    /^(.+\?)$/m,
    /^Answer: ([\s\S]+?)\n(?=Do:)/m,
    /^Do: ([\s\S]+?)(?=\nParameters:|$(?![\s\S]))/m,
    /^Parameters: (.+)$/m,
  ].map((form) => form.exec(head.join('\n'))?.[1]?.replaceAll('\n', ' '))
  if (!/^\d\d-[a-z-]+\.sql$/.test(file) || !question || !answer || !advice) {
    throw new Error(`${file} is not a known cookbook query`)
  }
  return {
    name: file.replace('.sql', ''),
    question,
    answer,
    advice,
    parameters: Object.fromEntries(
      (parameters ?? '')
        .split(', ')
        .filter((one) => one !== '')
        .map((one) => one.split(' = ') as [string, string]),
    ),
    sql: lines.slice(end).join('\n'),
  }
}
