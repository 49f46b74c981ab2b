/** Connecting a model: the change of the user's settings, and one request that tests it. */
export { type KeptSettings, keptSettings, type UserPlace } from './kept.ts';
export { type LiveTest, liveTest, nearestNames, withModels } from './live-test.ts';
export { type KeySettings, type ModelAccount, planLogin } from './plan.ts';
