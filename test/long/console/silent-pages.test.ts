/**
 * Every page of the console while no answer comes and while each fails: it says so by itself, and
 * fits a narrow screen meanwhile.
 */
import { afterAll, expect, it } from 'vitest'
import { tellStory } from '../../support/console/story.ts'
import { findSilentPages } from '../../support/console/walk-states.ts'
import { startStack, type TestStack } from '../../support/process/stack.ts'

let running: TestStack
afterAll(() => running?.discard())
const story = tellStory('silent', {
  stack: async () => {
    running = await startStack()
    return running.stack
  },
})

it('each page says that it waits, says that it failed, and fits 320 px meanwhile', async () => {
  const page = await story.page.context().newPage()
  expect(await findSilentPages(page, 'silent')).toEqual([])
})
