// Prints the ids of every snapshot of the collection c, one line each, until it is killed.
import { createRequire } from "node:module";

const require = createRequire(process.env.SMOKE_MODULES + "/");
const { Firestore } = require("@google-cloud/firestore");

const print = (snapshot) => console.log(JSON.stringify(snapshot.docs.map((document) => document.id)));
const fail = (error) => console.log(JSON.stringify(`error ${error.code} ${error.message}`));
new Firestore({ projectId: process.env.SMOKE_PROJECT }).collection("c").where("x", ">", 0).onSnapshot(print, fail);
