/** Vite puts an imported style sheet into the document. */
declare module '*.css' {}

/** Vite gives the text of a file. */
declare module '*?raw' {
  const text: string
  export default text
}
