/** Runs JavaScript inside a process that was started with `--inspect`, on each of its threads. */
import { until } from './until.ts'

type Message = {
  id?: number
  method?: string
  params?: { sessionId?: string; message?: string; workerInfo?: { title: string } }
  result?: unknown
}

export type Inspector = {
  /** Runs on the main thread; resolves when it has run. */
  onMain: (expression: string) => Promise<void>
  /** Runs on the only other thread that runs our code; resolves when it has run. */
  onWorker: (expression: string) => Promise<void>
  close: () => void
}

/** @param output the process's output, where Node writes the address */
export async function openInspector(output: () => string): Promise<Inspector> {
  let address: string | undefined
  await until('the inspector listens', () => {
    address = [...output().matchAll(/Debugger listening on (ws:\S+)/g)].at(-1)?.[1]
    return address !== undefined
  })
  const socket = new WebSocket(address!)
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve)
    socket.addEventListener('error', reject)
  })
  const answered = new Map<string, () => void>()
  let worker: string | undefined
  let lastId = 0
  socket.addEventListener('message', ({ data }) => {
    const { id, method, params } = JSON.parse(String(data)) as Message
    if (method === 'NodeWorker.attachedToWorker') worker = params!.sessionId
    else if (method === 'NodeWorker.receivedMessageFromWorker') {
      const inner = JSON.parse(params!.message!) as Message
      answered.get(`worker ${inner.id}`)?.()
    } else answered.get(`main ${id}`)?.()
  })
  const post = (method: string, params: object): Promise<void> => {
    const id = ++lastId
    const { promise, resolve } = Promise.withResolvers<void>()
    answered.set(`main ${id}`, resolve)
    socket.send(JSON.stringify({ id, method, params }))
    return promise
  }
  await post('NodeWorker.enable', { waitForDebuggerOnStart: false })
  await until('the thread can be inspected', () => worker !== undefined)
  return {
    onMain: (expression) => post('Runtime.evaluate', { expression }),
    onWorker: async (expression) => {
      const id = ++lastId
      const { promise, resolve } = Promise.withResolvers<void>()
      answered.set(`worker ${id}`, resolve)
      const message = JSON.stringify({ id, method: 'Runtime.evaluate', params: { expression } })
      await post('NodeWorker.sendMessageToWorker', { sessionId: worker, message })
      await promise
    },
    close: () => socket.close(),
  }
}
