/** Pictures for models: the bytes decide the type, and nothing is sent that services refuse for its form. */
export { pictureType } from './formats.ts';
export { inspectPicture, maxPictureBytes, type Picture, pictureFor } from './picture-part.ts';
