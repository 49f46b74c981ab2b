/**
 * Reviews from end to end: a forge with real git behind it, a model that finds faults by rules, the Hub with a real agent
 * server, and installed backends. Called by the tests `test/e2e/review*`. Never here: assertions of a test.
 */
export type { ItemDetail, ReviewApi } from './api.ts';
export { type Caught, Crash, ends, type Victim } from './crash.ts';
export { ofRuns, ofWrites } from './events.ts';
export type { BackendProcess } from './process.ts';
export { bot, commentsOf, conversationOf, reviewsOf } from './published.ts';
export type { HeldAnswer, KnownFault, Reviewer, ReviewTurn } from './reviewer.ts';
export { type Scene, type SceneOptions, startScene } from './scene.ts';
export { changeSetting } from './settings.ts';
