/**
 * What the tests of one page of the console share: the stack, a tenant, and a browser in which an
 * operator of theirs is signed in. The tests of a file are one story and run in order; files run
 * side by side on one stack, so that each has a tenant and operators of its own.
 */
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, inject } from 'vitest'
import {
  admin,
  createTenant,
  type IngestAnswer,
  ingest,
  type Submission,
  type Tenant,
  toBody,
} from '../http/tenant-client.ts'
import type { StackFacts } from '../process/stack.ts'
import { until } from '../process/until.ts'
import { launchBrowser, openPage, type WatchedPage } from './browser.ts'
import { type Controls, controlsOf } from './controls.ts'
import { joinAs, makeOperator, type Operator } from './operators.ts'
import { findSharedStack } from './shared-stack.ts'

export type Story = Operator &
  Controls & {
    readonly stack: StackFacts
    readonly browser: Browser
    /** Signed in as the operator of the story. */
    readonly page: Page
    readonly tenant: Tenant
    /** A page in a context of its own, signed out unless the options say more. */
    open: (options?: BrowserContextOptions) => Promise<Page>
    /** The same where another operator has just joined. */
    join: (operator: Operator) => Promise<Page>
    /** Opens a page of the tenant. */
    goto: (path: string) => Promise<unknown>
    /** Sends telemetry of the tenant, once the edge knows it. */
    send: (submission: Submission) => Promise<IngestAnswer['body']>
    /** Reads the tenant over the admin API. */
    read: <T>(path: string) => Promise<T>
  }

export type StoryOptions = {
  role?: string
  /** Where the story needs one to itself. */
  stack?: () => Promise<StackFacts>
  /** What a page may do although others may not. */
  allows?: (fault: string) => boolean
}

/** Against a hang only: beside other work a stack and a browser take minutes to start. */
const startMs = 600_000

/**
 * Prepares the story before the tests of this file, and ends it after them. No page of it may ask
 * another origin, break the content security policy or throw.
 * @param word names the tenant and the operator, once among all files
 */
export function tellStory(word: string, options: StoryOptions = {}): Story {
  const operator = makeOperator(`${word[0]!.toUpperCase()}${word.slice(1)}`, options.role)
  let stack: StackFacts
  let browser: Browser
  let page: Page
  let tenant: Tenant
  const opened: WatchedPage[] = []
  const open = async (more: BrowserContextOptions = {}): Promise<Page> => {
    const watched = await openPage(browser, { baseURL: stack.console, ...more })
    opened.push(watched)
    return watched.page
  }
  const join = async (other: Operator): Promise<Page> => {
    const joined = await open()
    await joinAs(stack, joined, other)
    return joined
  }
  beforeAll(async () => {
    const findStack = options.stack ?? (() => findSharedStack(inject('sharedStack')))
    ;[stack, browser] = await Promise.all([findStack(), launchBrowser()])
    tenant = await createTenant(stack, word)
    page = await join(operator)
  }, startMs)
  afterEach(() => {
    const faults = opened.flatMap((watched) => watched.faults.splice(0))
    expect(faults.filter((fault) => options.allows?.(fault) !== true)).toEqual([])
  })
  afterAll(() => browser?.close())
  return {
    ...operator,
    ...controlsOf(() => page),
    get stack() {
      return stack
    },
    get browser() {
      return browser
    },
    get page() {
      return page
    },
    get tenant() {
      return tenant
    },
    open,
    join,
    goto: (path) => page.goto(`/t/${word}/${path}`),
    send: (submission) =>
      until('the edge knows the tenant', async () => {
        const answer = await ingest(stack, tenant.hmac_secret, toBody(word, submission))
        return answer.status === 200 ? answer.body : null
      }),
    read: (path) => admin(stack, 'GET', `/tenants/${word}${path}`),
  }
}
