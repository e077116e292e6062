// The options of Node that the processes run with are measured ones, so what is measured on the
// local stack has to be what containers run.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { mallocEnv, nodeOptions } from '../../../deploy/local/stack/services.ts'

const file = fileURLToPath(new URL('../../../deploy/compose.yaml', import.meta.url))
const { services } = parse(readFileSync(file, 'utf8'), { merge: true }) as {
  services: Record<string, { command: string[] }>
}

test.each(Object.entries(nodeOptions))('%s runs alike in a container and here', (name, options) => {
  expect(services[name]!.command).toEqual(['node', ...options, `services/${name}/main.ts`])
})

test('malloc is told the same in the image and here', () => {
  const image = readFileSync(fileURLToPath(new URL('../../../deploy/Dockerfile', import.meta.url)))
  for (const [name, value] of Object.entries(mallocEnv)) {
    expect(image.toString()).toContain(`ENV ${name}=${value}\n`)
  }
})
