/** The machines that the page in the browser runs. */
export * from './conversation.ts';
