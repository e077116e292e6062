/** Vite puts an imported style sheet into the document. */
declare module '*.css' {}
