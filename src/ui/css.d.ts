/** A stylesheet imported for its effect: vite puts it into the page. */
declare module '*.css';
