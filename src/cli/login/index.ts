/** Connecting a model: the questions, the live test, and the change of the user's configuration. */

export { offerLogin } from './offer.ts';
export { exitOf, restartHint, showTest } from './show.ts';
export { logIn } from './wizard.ts';
