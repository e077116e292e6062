import { expect, test } from 'vitest'
import { withoutPassword } from '../../../deploy/local/stack/screen.ts'

test.each([
  ['postgres://di:pass@h:5432/d', 'postgres://di:***@h:5432/d'],
  ['postgres://di:p@ss:w@a:1,b:2/d?x=1', 'postgres://di:***@a:1,b:2/d?x=1'],
  ['http://h:8123/d?mail=a@b', 'http://h:8123/d?mail=a@b'],
  ['nats://di@h:4222', 'nats://di@h:4222'],
])('%s is shown without its password', (url, shown) => {
  expect(withoutPassword(url)).toBe(shown)
})
