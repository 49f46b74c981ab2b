/** The machines that the page in the browser runs. */
export * from './change-review.ts';
export * from './conversation.ts';
export * from './push-switch.ts';
export * from './race-review.ts';
