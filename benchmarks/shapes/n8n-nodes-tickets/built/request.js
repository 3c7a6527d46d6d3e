'use strict';
const { NodeApiError } = require('n8n-workflow');
exports.request = async function (method, path, body, qs) {
    const { site } = await this.getCredentials('ticketsApi');
    try {
        return await this.helpers.httpRequestWithAuthentication.call(this, 'ticketsApi', {
            method, url: `https://${site}.tickets.example/api/v3${path}`, body, qs, json: true,
        });
    } catch (error) {
        throw new NodeApiError(this.getNode(), error);
    }
};
