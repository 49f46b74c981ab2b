/** Connecting a model: the questions, the live test, and the change of the user's configuration. */

export { knownProviderNames } from './known-providers.ts';
export { type LiveTest, liveTest, withModels } from './live-test.ts';
export { offerLogin } from './offer.ts';
export { exitOf, restartHint, showTest } from './show.ts';
export { logIn } from './wizard.ts';
