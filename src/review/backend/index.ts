/** Assembles and starts the parts of the review backend: state directory, settings, store, source, worker, API. */
export { BackendError, type BackendErrorCode } from './error.ts';
export { type Backend, type BackendOptions, type BackendOverrides, startBackend } from './start.ts';
export { serviceTokenFile } from './state.ts';
