// The options of Node were measured on the local stack, so containers must use the same ones.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { mallocEnv, nodeOptions } from '../../../deploy/local/stack/services.ts'

const file = fileURLToPath(new URL('../../../deploy/compose.yaml', import.meta.url))
const { services } = parse(readFileSync(file, 'utf8'), { merge: true }) as {
  services: Record<string, { command: string[] }>
}

test.each(Object.entries(nodeOptions))(
  '%s has the same Node options in a container and in the local stack',
  (name, options) => {
    expect(services[name]!.command).toEqual(['node', ...options, `services/${name}/main.ts`])
  },
)

const image = readFileSync(
  fileURLToPath(new URL('../../../deploy/Dockerfile', import.meta.url)),
  'utf8',
)

test.each(Object.entries(nodeOptions))(
  'the image has the files of %s compiled for its Node options, as others compile anew',
  (name, options) => {
    expect(image).toContain(` compile ${options.join(' ')} services/${name}/main.ts &&`)
  },
)

test('malloc has the same settings in the image and in the local stack', () => {
  for (const [name, value] of Object.entries(mallocEnv)) {
    expect(image).toContain(`ENV ${name}=${value}\n`)
  }
})
