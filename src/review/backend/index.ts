/**
 * Puts the parts of the review backend together: state directory, settings, store, source, worker, API. Never here: what one of
 * the parts does.
 */
export { BackendError, type BackendErrorCode } from './error.ts';
export { type Backend, type BackendOptions, type BackendOverrides, startBackend } from './start.ts';
export { serviceTokenFile } from './state.ts';
