/** The settings, secrets and ports of the Helm chart have one source. */
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { renderProcesses } from '../../../deploy/helm-processes.ts'

it('what the chart knows of processes follows from compose.yaml and their configuration', () => {
  const file = new URL('../../../deploy/helm/files/processes.yaml', import.meta.url)
  const how = 'run: node deploy/helm-processes.ts > deploy/helm/files/processes.yaml'
  expect(readFileSync(file, 'utf8'), how).toBe(renderProcesses())
})
