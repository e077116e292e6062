/**
 * The variables that each Node process of a test starts with: of the test's own it gets no others.
 * With the files that earlier processes compiled it starts in half the CPU time.
 */
export function nodeEnv(): NodeJS.ProcessEnv {
  const { PATH, NODE_COMPILE_CACHE } = process.env
  return { PATH, NODE_COMPILE_CACHE }
}
